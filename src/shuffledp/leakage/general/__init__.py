"""What holds beyond the uniform shuffle: any guarantee, random crowds, orders that are kept."""
