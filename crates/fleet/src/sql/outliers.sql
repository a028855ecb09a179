SELECT host.name AS host, host.host_id, survey.name AS storage, survey.device_key,
    survey.read_ahead_kib, survey.origin, usual.read_ahead_kib AS usual_kib, usual.usual_hosts,
    usual.hosts, extract(epoch FROM survey.valid_from)::float8 AS since_unix_s
FROM usual
JOIN foreread.survey AS survey ON survey.name = usual.name AND survey.valid_to IS NULL
    AND survey.read_ahead_kib <> usual.read_ahead_kib
JOIN foreread.host AS host ON host.host_id = survey.host_id
WHERE host.name LIKE :name: AND (:origin: IS NULL OR survey.origin = :origin:)
ORDER BY survey.name, host.name
LIMIT :limit: OFFSET :skip:
