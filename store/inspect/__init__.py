"""Looking into a store folder without opening it: one of GantryMQ or of Apache RocketMQ, stopped or live.

Reading takes no lock, makes no file and changes none; holes of sparse files are skipped. What the files say about
themselves is believed first (sizes, names), and then compared with everything else.

    folder        what lies where, and in which state the store is
    log_reader    records, and every place where their chain breaks      check    a quick look at sizes, ends, markers
    queue_reader  consume queue units                                    verify   every record, unit and index entry
    index_reader  entries of the key index                               dump     any of them as rows
    ext_reader    units of the consume queue extension                   repair   cut, rebuild, keep what was cut
"""

from store.inspect.check import check_store
from store.inspect.dump import dump_checkpoint, dump_index, dump_records, dump_units
from store.inspect.findings import Finding, Findings, Level
from store.inspect.folder import StoreFolder, StoreState
from store.inspect.repair import RepairPlan, plan_repair, repair_store
from store.inspect.verify import verify_store

__all__ = [
    "Finding",
    "Findings",
    "Level",
    "RepairPlan",
    "StoreFolder",
    "StoreState",
    "check_store",
    "dump_checkpoint",
    "dump_index",
    "dump_records",
    "dump_units",
    "plan_repair",
    "repair_store",
    "verify_store",
]
