-- Tokens of pipelines and of scrapers: run starts and stops runs, metrics reads metrics and nothing else.
ALTER TABLE api_tokens DROP CONSTRAINT IF EXISTS api_tokens_scope_check;
ALTER TABLE api_tokens ADD CONSTRAINT api_tokens_scope_check
    CHECK (scope IN ('read', 'run', 'metrics', 'write', 'admin'));
