"""What every process of the appliance needs: tasks, logs, the data folder, fair turns, memory, time."""
