-- Draw a number for a process that has just opened the store: as terms are drawn, so that nobody else has it.
SELECT nextval('watchbill.term')
