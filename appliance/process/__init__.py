"""What every process of the appliance needs: tasks, logs, the data folder, fair queuing, memory, time."""
