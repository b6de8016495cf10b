"""From a request on the wire to its program, and back: parsing, routing, dispatch, fields, responses, documents."""
