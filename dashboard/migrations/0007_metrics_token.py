# The scope of a token that may only read /metrics

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0006_slaves'),
    ]

    operations = [
        migrations.AlterField(
            model_name='apitoken',
            name='scope',
            field=models.CharField(choices=[('metrics', 'Read /metrics only'), ('read', 'Read only'), ('write', 'Read and write'), ('config', "Read, write and change brokers' settings")], default='read', max_length=8),
        ),
    ]
