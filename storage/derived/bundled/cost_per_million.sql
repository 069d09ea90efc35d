-- What a million operations that succeeded cost, by adapter, size of the warehouse and currency, over the valid runs.
SELECT adapter, simulated, warehouse_size, currency, count(*) AS runs,
    1e6::double precision * sum(price) / sum(operations - errors) AS price_per_million,
    avg(price_per_million) AS avg_price_per_million, min(price_per_million) AS min_price_per_million,
    max(price_per_million) AS max_price_per_million, sum(credits) AS credits, sum(price) AS price,
    sum(operations)::bigint AS operations, sum(errors)::bigint AS errors, max(ended_at) AS last_run_at
FROM rollup.runs WHERE price_per_million IS NOT NULL AND verdict LIKE 'VALID%'
GROUP BY adapter, simulated, warehouse_size, currency
