// Package bundledtest hands the bundled plugins to tests, and compiles them beforehand.
package bundledtest

import "github.com/loadstone-db/loadstone/plugins/bundled"

// Files returns all bundled modules by file name, decompressed. The error is
// bundled.ErrNotBuilt where there are none.
func Files() (map[string][]byte, error) {
	modules, err := bundled.Modules()
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what is missing
	}
	files := map[string][]byte{}
	for name, module := range modules {
		if files[name], err = module(); err != nil {
			return nil, err
		}
	}
	return files, nil
}
