"""What people see: the command line and the reports. Nothing below imports it."""
