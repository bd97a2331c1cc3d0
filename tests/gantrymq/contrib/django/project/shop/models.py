"""What the shop keeps."""

from django.db import models


class Order(models.Model):
    """An order, which a message tells of."""

    name = models.CharField(max_length=50)
