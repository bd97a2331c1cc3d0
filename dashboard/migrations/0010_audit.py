# The audit log

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0009_dead_letters'),
    ]

    operations = [
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
                ('previous_hash', models.CharField(max_length=64)),
                ('entry_hash', models.CharField(max_length=64)),
            ],
            options={'ordering': ['-number']},
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
    ]
