"""Stories: what people rely on, told through the API against the whole product."""
