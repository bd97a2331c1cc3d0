# Runs that were started from a command line are in the table, too; a run may be done and incomplete

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0004_login_sources'),
    ]

    operations = [
        migrations.AddField(
            model_name='reportrun',
            name='from_shell',
            field=models.BooleanField(default=False),
        ),
        migrations.AlterField(
            model_name='reportrun',
            name='state',
            field=models.CharField(choices=[('queued', 'Waiting'), ('running', 'Running'), ('succeeded', 'Done'), ('incomplete', 'Done, incomplete'), ('failed', 'Failed'), ('timeout', 'Took too long'), ('cancelled', 'Stopped')], default='queued', max_length=12),
        ),
    ]
