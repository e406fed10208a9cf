-- Uploads that are blobs now are uploads no more.
DELETE FROM watchbill.upload
WHERE id = ANY (ARRAY(SELECT n FROM uploaded))
    AND run = ANY (:uploaded_runs::bigint[])
