package snowflake

import "github.com/loadstone-db/loadstone/sdk/jsondoc"

// classes maps the codes of errors onto classes, by the longest prefix: Snowflake's
// numbers, of six digits, and what the driver calls errors that have none. What is
// not here goes by its SQLSTATE, which the driver knows.
func classes(w *jsondoc.Writer) {
	w.Object().Key("classes").Object()
	for _, c := range [...][2]string{
		{"000604", "cancelled"}, {"000612", "timeout"}, {"000628", "timeout"}, {"000630", "timeout"},
		// The warehouse is missing, does not start, or was suspended; the resource monitor's quota is used up.
		{"000606", "resource"}, {"000607", "resource"}, {"000609", "resource"}, {"090073", "resource"},
		{"000625", "lock"}, {"000639", "throttled"}, {"090082", "serialization"},
		{"000904", "syntax"}, {"001003", "syntax"}, {"002003", "syntax"}, {"002004", "syntax"},
		{"002043", "syntax"}, {"003001", "auth"},
		// NULL in a NOT NULL column; primary, foreign and unique keys of hybrid tables.
		{"100072", "constraint"}, {"200001", "constraint"}, {"200009", "constraint"}, {"200011", "constraint"},
		// Sign-in, and sessions that have ended.
		{"390", "auth"}, {"391", "auth"}, {"392", "auth"}, {"393", "auth"}, {"394", "auth"}, {"395", "auth"},
		{"390104", "connection"}, {"390111", "connection"}, {"390112", "connection"}, {"390113", "connection"},
		{"390114", "connection"}, {"390115", "connection"},
		{"http_", "resource"}, {"http_429", "throttled"}, {"http_503", "throttled"},
		{"client_timeout", "timeout"}, {"client_cancelled", "cancelled"}, {"connection_lost", "connection"},
	} {
		w.Key(c[0]).Str(c[1])
	}
	w.EndObject().EndObject()
}
