-- What a million operations cost, by adapter, size of the warehouse and currency, over the valid runs.
SELECT adapter, warehouse_size, currency, count(*) AS runs, avg(price_per_million) AS avg_price_per_million,
    min(price_per_million) AS min_price_per_million, max(price_per_million) AS max_price_per_million,
    sum(credits) AS credits, sum(operations)::bigint AS operations, max(ended_at) AS last_run_at
FROM rollup.runs WHERE price_per_million IS NOT NULL AND verdict LIKE 'VALID%' GROUP BY adapter, warehouse_size, currency
