-- Make the schema that the address names.
CREATE SCHEMA watchbill
