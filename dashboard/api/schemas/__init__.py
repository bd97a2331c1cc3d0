"""What REST takes and gives: pydantic models by resource."""
