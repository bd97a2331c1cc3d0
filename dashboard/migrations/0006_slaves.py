# The history tells how far slaves were

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0005_report_runs_of_shells'),
    ]

    operations = [
        migrations.AddField('metricsample', 'slaves', models.PositiveIntegerField(null=True)),
        migrations.AddField('metricsample', 'slaves_in_sync', models.PositiveIntegerField(null=True)),
        migrations.AddField('metricsample', 'slave_behind_bytes', models.BigIntegerField(null=True)),
        migrations.AddField('metricsample', 'slave_behind_messages', models.BigIntegerField(null=True)),
        migrations.AddField('metricsample', 'slave_behind_s', models.FloatField(null=True)),
        migrations.AddField('metricsample', 'slave_bytes_rate', models.FloatField(null=True)),
    ]
