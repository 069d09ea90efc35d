package snowsim

import (
	"fmt"

	"github.com/loadstone-db/loadstone/snowsim/translate"
)

// checkParameters refuses what is no session parameter.
func checkParameters(set map[string]string) error {
	for name := range set {
		if !translate.IsParameter(name) {
			return fmt.Errorf("snowsim: there is no session parameter %q", name)
		}
	}
	return nil
}
