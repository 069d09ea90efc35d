package sdk

import (
	"strconv"

	"github.com/loadstone-db/loadstone/sdk/jsondoc"
)

// DefaultKeySample is how many keys of a table operations choose among, where the template does not say it.
const DefaultKeySample = 250_000

// KeySampleParameter is the parameter of adapters that says how many keys are read, as a property of a JSON Schema.
var KeySampleParameter = `"key_sample":{"title":"Keys to choose among","description":"Keys read before the run where keys ` +
	`are not integers without gaps. The keys and sampled rows of a run take at most 20 MB; of more, every second or fourth ` +
	`key is kept.","type":"integer","minimum":1000,"maximum":5000000,"default":` + strconv.Itoa(
	DefaultKeySample,
) + `}`

// KeySample reads that parameter.
func KeySample(params *jsondoc.Value) int64 {
	if n, ok := params.Get("key_sample").Int(); ok {
		return n
	}
	return DefaultKeySample
}
