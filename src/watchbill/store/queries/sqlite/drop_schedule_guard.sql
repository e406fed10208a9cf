-- Let schedules go back; the trigger is made again in the same transaction.
DROP TRIGGER schedule_never_goes_back
