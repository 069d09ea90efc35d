package snowflake

// schemas are the parameters (target.params) of each type, as JSON Schemas.
var schemas = [...]string{
	Standard:    `{"type":"object","properties":{},"additionalProperties":false}`,
	Hybrid:      `{"type":"object","properties":{},"additionalProperties":false}`,
	Interactive: `{"type":"object","properties":{},"additionalProperties":false}`,
}
