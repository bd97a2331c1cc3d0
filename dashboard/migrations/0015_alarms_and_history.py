# History of the sampler; alarms: rules, channels, silences, deliveries

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0014_run_scopes'),
    ]

    operations = [
        migrations.CreateModel(
            name='AlarmChannel',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=64, unique=True)),
                ('kind', models.CharField(choices=[('mail', 'Mail'), ('webhook', 'Webhook'), ('slack', 'Slack'), ('dingtalk', 'DingTalk'), ('feishu', 'Feishu'), ('wecom', 'WeCom')], max_length=16)),
                ('settings', models.TextField()),
                ('is_on', models.BooleanField(default=True)),
            ],
            options={
                'ordering': ['name'],
            },
        ),
        migrations.CreateModel(
            name='HistoryMark',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(db_index=True)),
                ('text', models.CharField(max_length=200)),
            ],
        ),
        migrations.CreateModel(
            name='AlarmRule',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=100)),
                ('kind', models.CharField(max_length=32)),
                ('pattern', models.CharField(blank=True, max_length=255)),
                ('threshold', models.FloatField()),
                ('clear', models.FloatField()),
                ('for_s', models.FloatField()),
                ('clear_s', models.FloatField()),
                ('level', models.PositiveSmallIntegerField()),
                ('is_on', models.BooleanField(default=True)),
                ('preset', models.CharField(blank=True, max_length=32)),
                ('deleted_at', models.DateTimeField(null=True)),
                ('channels', models.ManyToManyField(blank=True, to='dashboard.alarmchannel')),
            ],
            options={
                'ordering': ['pk'],
            },
        ),
        migrations.CreateModel(
            name='AlarmRow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('subject', models.CharField(max_length=300)),
                ('level', models.PositiveSmallIntegerField()),
                ('title', models.CharField(max_length=300)),
                ('text', models.CharField(max_length=300)),
                ('begun_at', models.DateTimeField(db_index=True)),
                ('ended_at', models.DateTimeField(db_index=True, null=True)),
                ('is_told', models.BooleanField(default=False)),
                ('rule', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='dashboard.alarmrule')),
            ],
        ),
        migrations.CreateModel(
            name='AlarmSilence',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('pattern', models.CharField(blank=True, max_length=255)),
                ('reason', models.CharField(max_length=200)),
                ('who', models.CharField(max_length=160)),
                ('begun_at', models.DateTimeField()),
                ('until', models.DateTimeField(db_index=True)),
                ('rule', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, to='dashboard.alarmrule')),
            ],
            options={
                'ordering': ['until'],
            },
        ),
        migrations.CreateModel(
            name='HistoryBlock',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('series', models.CharField(max_length=300)),
                ('step_s', models.PositiveIntegerField()),
                ('start', models.PositiveBigIntegerField()),
                ('values', models.BinaryField()),
            ],
            options={
                'indexes': [models.Index(fields=['step_s', 'start'], name='dashboard_h_step_s_2d9f07_idx')],
                'constraints': [models.UniqueConstraint(fields=('series', 'step_s', 'start'), name='history_block_once')],
            },
        ),
        migrations.CreateModel(
            name='AlarmDelivery',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('what', models.CharField(max_length=16)),
                ('title', models.CharField(max_length=300)),
                ('notice', models.TextField()),
                ('state', models.CharField(choices=[('waiting', 'Waiting'), ('sent', 'Sent'), ('failed', 'Failed')], default='waiting', max_length=8)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('made_at', models.DateTimeField(db_index=True)),
                ('due_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('answer', models.CharField(blank=True, max_length=300)),
                ('channel', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='dashboard.alarmchannel')),
            ],
            options={
                'ordering': ['-pk'],
                'indexes': [models.Index(fields=['state', 'due_at'], name='dashboard_a_state_c29208_idx')],
            },
        ),
    ]
