# The list of incidents

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0007_metrics_token'),
    ]

    operations = [
        migrations.CreateModel(
            name='IncidentRow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('identity', models.CharField(max_length=500)),
                ('level', models.PositiveSmallIntegerField()),
                ('title', models.CharField(max_length=500)),
                ('evidence', models.CharField(max_length=500)),
                ('worst', models.CharField(max_length=500)),
                ('begun_at', models.DateTimeField(db_index=True)),
                ('seen_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(db_index=True, null=True)),
            ],
        ),
    ]
