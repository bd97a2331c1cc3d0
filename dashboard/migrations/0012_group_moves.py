# Where groups were before they were moved

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0011_invitations'),
    ]

    operations = [
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
    ]
