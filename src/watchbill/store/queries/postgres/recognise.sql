-- Say which server this is; if it is another one than before, no number that the other one may have issued comes again.
SELECT watchbill.recognise()
