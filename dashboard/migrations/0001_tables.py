# The tables of 0.1.0; dashboard/database/tables.py records it in databases that the 24 migrations before it made

import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
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
            name='AuditEntry',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('number', models.PositiveBigIntegerField(unique=True)),
                ('at', models.DateTimeField(db_index=True)),
                ('who', models.CharField(blank=True, max_length=160)),
                ('way', models.CharField(choices=[('page', 'Page'), ('rest', 'REST'), ('command', 'Command line'), ('remoting', 'Remoting')], max_length=8)),
                ('address', models.CharField(blank=True, max_length=64)),
                ('action', models.CharField(max_length=100)),
                ('target', models.CharField(blank=True, max_length=300)),
                ('details', models.TextField(blank=True)),
                ('result', models.CharField(choices=[('done', 'Done'), ('refused', 'Refused'), ('failed', 'Failed')], max_length=8)),
                ('told', models.CharField(blank=True, max_length=300)),
                ('request_id', models.CharField(blank=True, default='', max_length=64)),
                ('previous_hash', models.CharField(max_length=64)),
                ('entry_hash', models.CharField(max_length=64)),
            ],
            options={
                'ordering': ['-number'],
            },
        ),
        migrations.CreateModel(
            name='BookingTurn',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ],
        ),
        migrations.CreateModel(
            name='GroupMove',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('group', models.CharField(db_index=True, max_length=255)),
                ('topic', models.CharField(max_length=255)),
                ('places', models.TextField()),
                ('who', models.CharField(max_length=160)),
                ('at', models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name='GroupPromise',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('group', models.CharField(blank=True, max_length=255, unique=True)),
                ('seconds', models.FloatField()),
            ],
            options={
                'ordering': ['group'],
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
            name='IncidentRow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('words', models.TextField(blank=True, default='')),
                ('identity', models.CharField(max_length=500)),
                ('level', models.PositiveSmallIntegerField()),
                ('title', models.CharField(max_length=500)),
                ('evidence', models.CharField(max_length=500)),
                ('worst', models.CharField(max_length=500)),
                ('begun_at', models.DateTimeField(db_index=True)),
                ('seen_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(db_index=True, null=True)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='MetricSample',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('at', models.DateTimeField(unique=True)),
                ('in_rate', models.FloatField(null=True)),
                ('in_rate_max', models.FloatField(null=True)),
                ('out_rate', models.FloatField(null=True)),
                ('out_rate_max', models.FloatField(null=True)),
                ('stored_messages', models.BigIntegerField(null=True)),
                ('disk_ratio', models.FloatField(null=True)),
                ('brokers_answering', models.PositiveIntegerField(default=0)),
                ('slaves', models.PositiveIntegerField(null=True)),
                ('slaves_in_sync', models.PositiveIntegerField(null=True)),
                ('slave_behind_bytes', models.BigIntegerField(null=True)),
                ('slave_behind_messages', models.BigIntegerField(null=True)),
                ('slave_behind_s', models.FloatField(null=True)),
                ('slave_bytes_rate', models.FloatField(null=True)),
            ],
            options={
                'ordering': ['at'],
            },
        ),
        migrations.CreateModel(
            name='PutBackRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('group', models.CharField(db_index=True, max_length=255)),
                ('state', models.CharField(choices=[('running', 'Running'), ('done', 'Done'), ('stopped', 'Stopped'), ('failed', 'Failed')], db_index=True, default='running', max_length=8)),
                ('q', models.TextField(blank=True)),
                ('since_ms', models.BigIntegerField(null=True)),
                ('until_ms', models.BigIntegerField(null=True)),
                ('queue', models.CharField(blank=True, max_length=300)),
                ('to', models.CharField(max_length=8)),
                ('rate', models.PositiveIntegerField()),
                ('is_again', models.BooleanField(default=False)),
                ('begin', models.TextField()),
                ('older', models.TextField(blank=True)),
                ('wanted', models.PositiveIntegerField(null=True)),
                ('scanned', models.PositiveIntegerField(default=0)),
                ('sent', models.PositiveIntegerField(default=0)),
                ('failed', models.PositiveIntegerField(default=0)),
                ('unknown', models.PositiveIntegerField(default=0)),
                ('before', models.PositiveIntegerField(default=0)),
                ('username', models.CharField(max_length=255)),
                ('stopped_by', models.CharField(blank=True, max_length=255)),
                ('told', models.CharField(blank=True, max_length=500)),
                ('started_at', models.DateTimeField(db_index=True)),
                ('changed_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='ReportPlan',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('report', models.CharField(max_length=16, unique=True)),
                ('interval_minutes', models.PositiveIntegerField(default=60)),
                ('days', models.PositiveIntegerField(default=7)),
                ('cron', models.CharField(blank=True, default='', max_length=64)),
                ('zone', models.CharField(default='UTC', max_length=64)),
                ('next_run_at', models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name='SetupToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('token_hash', models.CharField(max_length=64, unique=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('used_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='TopicChangeRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('state', models.CharField(choices=[('running', 'Running'), ('done', 'Done'), ('stopped', 'Stopped'), ('failed', 'Failed')], db_index=True, default='running', max_length=8)),
                ('wanted', models.JSONField()),
                ('topics', models.JSONField()),
                ('who', models.CharField(max_length=255)),
                ('way', models.CharField(choices=[('page', 'Page'), ('rest', 'REST'), ('command', 'Command line'), ('remoting', 'Remoting')], max_length=10)),
                ('address', models.CharField(blank=True, max_length=64)),
                ('request_id', models.CharField(blank=True, max_length=64)),
                ('stopped_by', models.CharField(blank=True, max_length=255)),
                ('told', models.JSONField(default=str)),
                ('started_at', models.DateTimeField()),
                ('resumed_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name='TrailPosition',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('path', models.CharField(max_length=500, unique=True)),
                ('part', models.CharField(blank=True, max_length=32)),
                ('offset', models.PositiveBigIntegerField()),
            ],
        ),
        migrations.CreateModel(
            name='User',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('password', models.CharField(max_length=128, verbose_name='password')),
                ('last_login', models.DateTimeField(blank=True, null=True, verbose_name='last login')),
                ('username', models.CharField(max_length=64, unique=True, validators=[django.core.validators.RegexValidator('^[\\w.@+-]+\\Z', 'Letters, digits and . @ + - _ only.')])),
                ('role', models.CharField(choices=[('reader', 'Reader'), ('operator', 'Operator'), ('admin', 'Administrator')], default='reader', max_length=16)),
                ('is_active', models.BooleanField(default=True)),
                ('name_prefixes', models.TextField(blank=True, default='')),
                ('language', models.CharField(blank=True, default='', max_length=16)),
                ('times', models.CharField(choices=[('utc', 'UTC'), ('local', 'Local'), ('both', 'Both')], default='both', max_length=5)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'constraints': [models.UniqueConstraint(django.db.models.functions.text.Lower('username'), name='user_name_whatever_the_case')],
            },
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
                ('words', models.TextField(blank=True, default='')),
                ('subject', models.CharField(max_length=300)),
                ('level', models.PositiveSmallIntegerField()),
                ('title', models.CharField(max_length=300)),
                ('text', models.CharField(max_length=300)),
                ('begun_at', models.DateTimeField(db_index=True)),
                ('ended_at', models.DateTimeField(db_index=True, null=True)),
                ('is_told', models.BooleanField(default=False)),
                ('rule', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to='dashboard.alarmrule')),
            ],
            options={
                'abstract': False,
            },
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
            name='ApiToken',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('name', models.CharField(max_length=64)),
                ('prefix', models.CharField(max_length=12)),
                ('token_hash', models.CharField(max_length=64, unique=True)),
                ('scope', models.CharField(choices=[('metrics', 'Read /metrics only'), ('read', 'Read only'), ('write', 'Read and write'), ('config', "Read, write and change brokers' settings"), ('admin', 'Everything that the account can do, including accounts and tokens')], default='read', max_length=8)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('last_used_at', models.DateTimeField(null=True)),
                ('revoked_at', models.DateTimeField(null=True)),
                ('user', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='api_tokens', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created_at'],
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
            name='Invitation',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('token_hash', models.CharField(max_length=64, unique=True)),
                ('role', models.CharField(choices=[('reader', 'Reader'), ('operator', 'Operator'), ('admin', 'Administrator')], max_length=16)),
                ('label', models.CharField(max_length=64)),
                ('name_prefixes', models.TextField(blank=True, default='')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('made_by', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='invitations', to=settings.AUTH_USER_MODEL)),
            ],
        ),
        migrations.CreateModel(
            name='LoginFailure',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('account_key', models.CharField(max_length=64)),
                ('source', models.CharField(max_length=64)),
                ('is_known_browser', models.BooleanField(default=False)),
                ('at', models.DateTimeField()),
            ],
            options={
                'indexes': [models.Index(fields=['account_key', 'at'], name='dashboard_l_account_529c48_idx'), models.Index(fields=['source', 'at'], name='dashboard_l_source_421f25_idx'), models.Index(fields=['at'], name='dashboard_l_at_177419_idx')],
            },
        ),
        migrations.CreateModel(
            name='PutBackRow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('letter', models.CharField(max_length=500, unique=True)),
                ('group', models.CharField(db_index=True, max_length=255)),
                ('place', models.CharField(max_length=255)),
                ('cause', models.CharField(max_length=500)),
                ('target', models.CharField(max_length=255)),
                ('state', models.CharField(choices=[('begun', 'Unknown'), ('sent', 'Resent'), ('failed', 'Failed')], max_length=8)),
                ('told', models.CharField(max_length=500)),
                ('username', models.CharField(max_length=255)),
                ('at', models.DateTimeField(db_index=True)),
                ('run', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='letters', to='dashboard.putbackrun')),
            ],
        ),
        migrations.CreateModel(
            name='WeeklyMail',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('cron', models.CharField(default='0 8 * * mon', max_length=64)),
                ('zone', models.CharField(default='UTC', max_length=64)),
                ('next_at', models.DateTimeField(null=True)),
                ('runs', models.JSONField(default=list)),
                ('begin_ms', models.BigIntegerField(default=0)),
                ('end_ms', models.BigIntegerField(default=0)),
                ('channels', models.ManyToManyField(blank=True, to='dashboard.alarmchannel')),
            ],
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
        migrations.CreateModel(
            name='Identity',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('issuer', models.CharField(max_length=512)),
                ('subject', models.CharField(max_length=255)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='identity', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('issuer', 'subject'), name='identity_of_one_person')],
            },
        ),
        migrations.CreateModel(
            name='ReportRun',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('run_id', models.CharField(max_length=32, unique=True)),
                ('report', models.CharField(default='traffic', max_length=16)),
                ('state', models.CharField(choices=[('queued', 'Waiting'), ('running', 'Running'), ('succeeded', 'Done'), ('incomplete', 'Done, incomplete'), ('failed', 'Failed'), ('timeout', 'Took too long'), ('cancelled', 'Stopped')], default='queued', max_length=12)),
                ('begin_ms', models.BigIntegerField()),
                ('end_ms', models.BigIntegerField()),
                ('topics', models.JSONField(default=list)),
                ('zone', models.CharField(default='UTC', max_length=64)),
                ('from_shell', models.BooleanField(default=False)),
                ('attempt', models.PositiveSmallIntegerField(default=1)),
                ('not_before', models.DateTimeField(null=True)),
                ('created_at', models.DateTimeField()),
                ('started_at', models.DateTimeField(null=True)),
                ('finished_at', models.DateTimeField(null=True)),
                ('rows', models.BigIntegerField(null=True)),
                ('result_bytes', models.BigIntegerField(null=True)),
                ('ingested_rows', models.BigIntegerField(null=True)),
                ('error', models.TextField(blank=True)),
                ('requested_by', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL)),
            ],
            options={
                'ordering': ['-created_at', '-id'],
                'indexes': [models.Index(fields=['state', 'created_at'], name='dashboard_r_state_b65477_idx')],
            },
        ),
        migrations.CreateModel(
            name='TopicChangeResult',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('topic', models.CharField(max_length=255)),
                ('state', models.CharField(choices=[('begun', 'Begun'), ('done', 'Done'), ('failed', 'Failed')], max_length=8)),
                ('told', models.JSONField(default=str)),
                ('run', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='results', to='dashboard.topicchangerun')),
            ],
            options={
                'constraints': [models.UniqueConstraint(fields=('run', 'topic'), name='topic_once_a_run')],
            },
        ),
    ]
