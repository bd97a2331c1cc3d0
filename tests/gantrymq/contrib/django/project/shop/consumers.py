"""What the shop consumes."""

import os
import time

from django.db import connection

from gantrymq import ConsumeFrom
from gantrymq.contrib.django import consumer
from shop.models import Order


@consumer("placed", group="shop-placed", consume_from=ConsumeFrom.FIRST_OFFSET)
def placed(messages):
    """Write each as an order; one called "slow" takes its time."""
    for message in messages:
        name = message.body.decode()
        print("begins", name, flush=True)
        if name == "slow":
            time.sleep(float(os.environ["SHOP_SLOW_S"]))
        Order.objects.create(name=name)
        print("consumed", name, "in", connection.vendor, flush=True)


@consumer("returned", group="shop-returned", expression="damaged", concurrency=1)
def returned(messages):
    """Nothing comes back in this shop."""
