# Which topics and whose days a run is about

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0013_admin_tokens'),
    ]

    operations = [
        migrations.AddField(
            model_name='reportrun',
            name='topics',
            field=models.JSONField(default=list),
        ),
        migrations.AddField(
            model_name='reportrun',
            name='zone',
            field=models.CharField(default='UTC', max_length=64),
        ),
    ]
