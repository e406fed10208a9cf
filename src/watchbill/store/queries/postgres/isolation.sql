-- Say how much a transaction sees of what others have committed since it began.
SELECT current_setting('transaction_isolation')
