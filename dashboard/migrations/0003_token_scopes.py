# The scope that may change brokers' settings

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0002_reports'),
    ]

    operations = [
        migrations.AlterField(
            model_name='apitoken',
            name='scope',
            field=models.CharField(choices=[('read', 'Read only'), ('write', 'Read and write'), ('config', "Read, write and change brokers' settings")], default='read', max_length=8),
        ),
    ]
