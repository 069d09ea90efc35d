-- Functions over histograms. A histogram is a bigint[] that can be merged with others:
-- {schema, offset, sum_ns, min_ns, max_ns, count of the bucket at the offset, of the next …}.

-- histogram_count returns how many values a histogram has.
CREATE OR REPLACE FUNCTION rollup.histogram_count(h bigint[]) RETURNS bigint
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT coalesce(sum(c), 0)::bigint FROM unnest(h[6:]) AS c
$$;

-- histogram_add merges two histograms of the same schema. Loadstone writes histograms of one schema only.
CREATE OR REPLACE FUNCTION rollup.histogram_add(a bigint[], b bigint[]) RETURNS bigint[]
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    low bigint;
    counts bigint[];
BEGIN
    IF b IS NULL OR cardinality(b) < 6 THEN
        RETURN a;
    ELSIF a IS NULL OR cardinality(a) < 6 THEN
        RETURN b;
    ELSIF a[1] <> b[1] THEN
        RAISE EXCEPTION 'histograms of schema % and % cannot be merged', a[1], b[1];
    END IF;
    low := least(a[2], b[2]);
    SELECT array_agg(coalesce(x, 0) + coalesce(y, 0) ORDER BY n) INTO counts FROM unnest(
        array_fill(0::bigint, ARRAY[(a[2] - low)::integer]) || a[6:],
        array_fill(0::bigint, ARRAY[(b[2] - low)::integer]) || b[6:]) WITH ORDINALITY AS u (x, y, n);
    RETURN ARRAY[a[1], low, a[3] + b[3], least(a[4], b[4]), greatest(a[5], b[5])] || counts;
END $$;

-- histogram_merge merges the histograms of a group.
CREATE OR REPLACE AGGREGATE rollup.histogram_merge(bigint[]) (
    SFUNC = rollup.histogram_add, STYPE = bigint[], COMBINEFUNC = rollup.histogram_add, PARALLEL = SAFE);

-- histogram_quantile_ms returns the q-quantile (0 to 1) in milliseconds, as PERCENTILE_CONT does for the same values:
-- it interpolates between the two neighbours of the rank. The smallest and the largest value are exact, others are
-- the middle of their bucket, within 0.55 %. It returns NULL for an empty histogram.
CREATE OR REPLACE FUNCTION rollup.histogram_quantile_ms(h bigint[], q double precision) RETURNS double precision
    LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
    counts CONSTANT bigint[] := h[6:];
    total bigint := 0;
    seen bigint := 0;
    n integer := 0;
    c bigint;
    -- Counted from 0; below is the lower of the two neighbours.
    rank double precision;
    below bigint;
    low double precision;
    high double precision;
BEGIN
    FOREACH c IN ARRAY counts LOOP
        total := total + c;
    END LOOP;
    IF total = 0 THEN
        RETURN NULL;
    END IF;
    rank := least(greatest(q, 0), 1) * (total - 1);
    below := floor(rank);
    IF below >= total - 1 THEN
        RETURN h[5] / 1e6::double precision;
    END IF;
    low := CASE WHEN below = 0 THEN h[4] END;
    high := CASE WHEN below + 1 = total - 1 THEN h[5] END;
    FOREACH c IN ARRAY counts LOOP
        EXIT WHEN low IS NOT NULL AND high IS NOT NULL;
        seen := seen + c;
        IF low IS NULL AND seen > below THEN
            low := greatest(h[4], least(h[5], power(2, (h[2] + n - 0.5) / power(2, h[1]))));
        END IF;
        IF high IS NULL AND seen > below + 1 THEN
            high := greatest(h[4], least(h[5], power(2, (h[2] + n - 0.5) / power(2, h[1]))));
        END IF;
        n := n + 1;
    END LOOP;
    RETURN (low + (high - low) * (rank - below)) / 1e6;
END $$;

-- histogram_mean_ms returns the mean in milliseconds, NULL for an empty histogram.
CREATE OR REPLACE FUNCTION rollup.histogram_mean_ms(h bigint[]) RETURNS double precision
    LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT h[3]::double precision / nullif(rollup.histogram_count(h), 0) / 1e6
$$;
