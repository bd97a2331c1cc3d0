# Log-ins are counted by source: an address, or a browser that has logged in before

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0003_token_scopes'),
    ]

    operations = [
        migrations.DeleteModel(name='LoginFailure'),  # what it held was forgotten after 15 minutes anyway
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
            name='BookingTurn',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
            ],
        ),
    ]
