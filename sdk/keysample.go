package sdk

import (
	"strconv"

	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// DefaultKeySample is how many keys of a table operations choose among, where the template does not say it.
const DefaultKeySample = 250_000

// KeySampleParameter is the parameter of adapters that says how many keys are read, as a property of a JSON Schema.
var KeySampleParameter = `"key_sample":{"title":"Keys to choose among","description":"How many keys of a table are ` +
	`read before the run, spread over all of it, where its keys are not integers without gaps: all of them, if it has no ` +
	`more rows. A key takes 16 bytes as a UUID, 8 as a number, 4 more than its text, in each process that carries the ` +
	`run. The keys and sampled rows of all tables of a run take 20 MB at most: of more, every second key is kept, or every ` +
	`fourth, and a note says how many.","type":"integer","minimum":1000,"maximum":5000000,"default":` + strconv.Itoa(DefaultKeySample) + `}`

// KeySample reads that parameter.
func KeySample(params *jsondoc.Value) int64 {
	if n, ok := params.Get("key_sample").Int(); ok {
		return n
	}
	return DefaultKeySample
}
