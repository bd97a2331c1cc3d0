"""SQL92 conditions on message properties, as RocketMQ 4.9 understands them.

    condition = compile_condition("price BETWEEN 10 AND 20 AND region IN ('eu', 'us')")
    condition.is_met({"price": "12", "region": "eu"})      # True

Text to tokens (`lexer`), tokens to a tree that is checked like RocketMQ's (`parser`, `tree`), tree to Python closures
(`evaluate`), with Java's rules for comparing texts with numbers (`java_values`). No text is ever run as Python. Length,
depth and size are bounded, so that no condition can hold up the broker.

Language: NOT, AND, OR, =, <>, <, <=, >, >=, [NOT] BETWEEN, [NOT] IN ('text', …), IS [NOT] NULL, TRUE, FALSE, numbers,
'text' with '' for a quote, comments. Property names are case-sensitive, words of the language are not. RocketMQ's
oddities are kept, because the same condition must choose the same messages here and there; `tests/interop` compares
both. The one exception: RocketMQ ignores what follows a complete condition (`a LIKE 'x%'` means `a` there); here it is
an error.
"""

from __future__ import annotations

from appliance.broker.sql_filter.condition import Condition, compile_condition
from appliance.broker.sql_filter.errors import EvaluationError, SqlError

__all__ = ["Condition", "EvaluationError", "SqlError", "compile_condition"]
