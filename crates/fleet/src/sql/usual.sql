WITH counted AS (
    SELECT name, read_ahead_kib, count(*) AS hosts
    FROM foreread.survey WHERE valid_to IS NULL GROUP BY name, read_ahead_kib
), most AS (
    SELECT DISTINCT ON (name) name, read_ahead_kib, hosts AS usual_hosts,
        sum(hosts) OVER (PARTITION BY name)::bigint AS hosts
    FROM counted ORDER BY name, counted.hosts DESC
), usual AS (
    SELECT * FROM most WHERE hosts >= 3 AND usual_hosts * 2 > hosts
)
