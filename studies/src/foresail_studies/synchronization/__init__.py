"""Study of synchronization: speed and cost of distributed training on rented machines."""
