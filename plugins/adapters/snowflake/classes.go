package snowflake

import "github.com/loadstone-db/loadstone/sdk/jsondoc"

// classes maps Snowflake's error numbers (six digits), SQLSTATEs and their
// prefixes onto classes; the longest match wins.
func classes(w *jsondoc.Writer) {
	w.Object().Key("classes").Object()
	for _, c := range [...][2]string{
		// SQLSTATEs.
		{"08", "connection"}, {"28", "auth"}, {"42501", "auth"},
		{"42", "syntax"}, {"0A", "syntax"}, {"23", "constraint"}, {"22", "data"}, {"40", "serialization"}, {"57014", "cancelled"},
		// Numbers: what a user can do about them.
		{"000604", "cancelled"}, {"000630", "timeout"}, {"000625", "lock"}, {"000606", "resource"}, {"200001", "constraint"},
	} {
		w.Key(c[0]).Str(c[1])
	}
	w.EndObject().EndObject()
}
