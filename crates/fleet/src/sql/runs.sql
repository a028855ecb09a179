SELECT run.run_uuid, host.name AS host, host.host_id, run.target, run.command, run.status,
    run.version, extract(epoch FROM run.created)::float8 AS created_unix_s,
    (SELECT count(*) FROM foreread.trial AS trial WHERE trial.run_uuid = run.run_uuid) AS trials
FROM foreread.run AS run
JOIN foreread.host AS host ON host.host_id = run.host_id
WHERE host.name LIKE :name:
    AND run.created > now() - make_interval(days => :days:)
ORDER BY run.created DESC, host.name, run.number
LIMIT :limit: OFFSET :skip:
