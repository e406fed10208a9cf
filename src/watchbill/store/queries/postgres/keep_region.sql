-- Write down of which region a role is; of one alone.
INSERT INTO watchbill.region_role AS known (role, region)
VALUES (:role::text, :region::text)
ON CONFLICT (role) DO UPDATE
SET region = excluded.region
WHERE known.region <> excluded.region
