SELECT run.run_uuid, host.name AS host, host.host_id, run.target, run.command, run.version,
    host.kernel, extract(epoch FROM run.created)::float8 AS created_unix_s,
    coalesce((SELECT json_agg(cell) FROM (
        SELECT record ->> 'workload' AS workload, record -> 'settings' AS settings,
            count(*) AS trials,
            percentile_cont(0.5) WITHIN GROUP (ORDER BY throughput) AS median,
            min(throughput) AS lowest, max(throughput) AS highest
        FROM foreread.trial AS trial,
            LATERAL (SELECT (record #>> '{figures,throughput_mib_s}')::float8) AS of_trial(throughput)
        WHERE trial.run_uuid = run.run_uuid AND record ->> 'status' = 'clean'
        GROUP BY record ->> 'workload', record -> 'settings') AS cell), '[]') AS cells
FROM foreread.run AS run
JOIN foreread.host AS host ON host.host_id = run.host_id
WHERE run.run_uuid = ANY (:runs:::uuid[])
ORDER BY array_position(:runs:::uuid[], run.run_uuid)
