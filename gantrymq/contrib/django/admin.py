"""The outbox in Django's admin: state, error, next try; actions that try again or discard."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin, messages
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.utils import timezone

from gantrymq.contrib.django.models import UNSENT, OutboxMessage, OutboxState, can_lock_rows

if TYPE_CHECKING:
    OutboxAdminBase = admin.ModelAdmin[OutboxMessage]
else:  # at run time the class takes no parameter
    OutboxAdminBase = admin.ModelAdmin

BODY_CHARS = 2000
ERROR_CHARS = 120


@admin.register(OutboxMessage)
class OutboxMessageAdmin(OutboxAdminBase):
    """Messages can be read, tried again and discarded, never written or removed: the relay does that."""

    list_display: tuple[str, ...] = (
        "id",
        "topic",
        "sharding_key",
        "keys",
        "state",
        "tries",
        "next_try",
        "created_at",
        "short_error",
    )
    list_filter: ClassVar[tuple[str, ...]] = ("state", "topic", "created_at")
    search_fields: ClassVar[tuple[str, ...]] = ("msg_id", "keys", "sharding_key", "topic")
    ordering: ClassVar[tuple[str, ...]] = ("-id",)
    show_full_result_count = False
    actions: tuple[str, ...] = ("try_again", "discard")
    fields: ClassVar[tuple[str | tuple[str, ...], ...]] = (
        ("state", "tries", "refusals"),
        "error",
        ("created_at", "next_try_at", "ended_at"),
        ("topic", "sharding_key", "msg_id"),
        ("tags", "keys"),
        "properties",
        ("delay_level", "deliver_at"),
        "body_text",
        "place",
    )

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Never: only put_in_outbox adds."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Never: discarded ones go with the clean-up."""
        return False

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> list[str]:
        """All of them."""
        return [*(field.name for field in OutboxMessage._meta.fields), "body_text"]

    @admin.display(description="error")
    def short_error(self, row: OutboxMessage) -> str:
        """The beginning of the last failure."""
        return row.error if len(row.error) <= ERROR_CHARS else f"{row.error[:ERROR_CHARS]}…"

    @admin.display(description="next try", ordering="next_try_at")
    def next_try(self, row: OutboxMessage) -> Any:
        """When it is tried again, nothing for what is not."""
        return row.next_try_at if row.state == OutboxState.WAITING and row.tries else None

    @admin.display(description="body")
    def body_text(self, row: OutboxMessage) -> str:
        """The body as text, as far as it is one."""
        body = bytes(row.body)
        text = body[:BODY_CHARS].decode(errors="replace")
        return text if len(body) <= BODY_CHARS else f"{text}… ({len(body)} bytes)"

    @admin.action(description="Try again now", permissions=["change"])
    def try_again(self, request: HttpRequest, queryset: QuerySet[OutboxMessage]) -> None:
        """Let failed and waiting messages be due at once."""
        fresh = {"state": OutboxState.WAITING, "refusals": 0, "tries": 0, "next_try_at": timezone.now()}
        self._change(request, queryset, fresh, "due now")

    @admin.action(description="Discard: never send", permissions=["change"])
    def discard(self, request: HttpRequest, queryset: QuerySet[OutboxMessage]) -> None:
        """Let what waits behind an unsent message of the same key go on without it."""
        self._change(request, queryset, {"state": OutboxState.DISCARDED, "ended_at": timezone.now()}, "discarded")

    def _change(
        self, request: HttpRequest, queryset: QuerySet[OutboxMessage], values: dict[str, Any], done: str
    ) -> None:
        """Change those that are unsent; what a relay is sending at this moment stays as it is."""
        alias = queryset.db
        chosen = queryset.count()
        with transaction.atomic(using=alias):
            unsent = queryset.filter(state__in=UNSENT)
            if can_lock_rows(alias):
                unsent = unsent.select_for_update(skip_locked=True)
            now = timezone.now()
            ids = [row.pk for row in unsent.filter(Q(reserved_until=None) | Q(reserved_until__lt=now)).only("pk")]
            count = OutboxMessage.objects.using(alias).filter(pk__in=ids).update(**values)
        left = chosen - count
        told = f"{count} {done}" + (f"; {left} were sent, discarded, or are being sent just now" if left > 0 else "")
        self.message_user(request, told, messages.SUCCESS if count else messages.WARNING)
