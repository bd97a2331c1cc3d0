# Dead letters that were put back

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('dashboard', '0008_incidents'),
    ]

    operations = [
        migrations.CreateModel(
            name='PutBackRow',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('letter', models.CharField(max_length=500, unique=True)),
                ('group', models.CharField(db_index=True, max_length=255)),
                ('place', models.CharField(max_length=255)),
                ('cause', models.CharField(max_length=500)),
                ('target', models.CharField(max_length=255)),
                ('state', models.CharField(choices=[('begun', 'Not known'), ('sent', 'Put back'), ('failed', 'Failed')], max_length=8)),
                ('told', models.CharField(max_length=500)),
                ('username', models.CharField(max_length=255)),
                ('at', models.DateTimeField(db_index=True)),
            ],
        ),
    ]
