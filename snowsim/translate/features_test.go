package translate

import "testing"

// TestFeatures: what an account does not have is refused with Snowflake's numbers.
func TestFeatures(t *testing.T) {
	for _, c := range []struct {
		name    string
		account Contract
		sql     string
		code    string
	}{
		{"everything", Contract{}, "CREATE WAREHOUSE w MAX_CLUSTER_COUNT = 2 SCALING_POLICY = ECONOMY", ""},
		{"one cluster on Standard edition", Contract{Standard: true}, "CREATE WAREHOUSE w MAX_CLUSTER_COUNT = 1", ""},
		{"two clusters on Standard edition", Contract{Standard: true}, "CREATE WAREHOUSE w MAX_CLUSTER_COUNT = 2",
			"001423"},
		{"a policy on Standard edition", Contract{Standard: true}, "ALTER WAREHOUSE wh SET SCALING_POLICY = STANDARD",
			"001423"},
		{"search optimization on Standard edition", Contract{Standard: true},
			"ALTER TABLE t ADD SEARCH OPTIMIZATION ON EQUALITY(id)", "000002"},
		{"search optimization", Contract{}, "ALTER TABLE t ADD SEARCH OPTIMIZATION ON EQUALITY(id)", ""},
		{"hybrid on AWS", Contract{Region: "AWS_EU_CENTRAL_1"}, "CREATE HYBRID TABLE h (id INT PRIMARY KEY)", ""},
		{"hybrid on Google Cloud", Contract{Region: "GCP_US_CENTRAL1"}, "CREATE HYBRID TABLE h (id INT PRIMARY KEY)",
			"000002"},
		{"hybrid for the government", Contract{Region: "AWS_US_GOV_WEST_1"},
			"CREATE HYBRID TABLE h (id INT PRIMARY KEY)",
			"000002"},
		{"hybrid on trial", Contract{Trial: true}, "CREATE HYBRID TABLE h (id INT PRIMARY KEY)", "000002"},
	} {
		h := newHost(t)
		tr, err := New(t.Context(), h, Options{Contract: c.account})
		if err != nil {
			t.Fatal(err)
		}
		s := connect(t, h, tr)
		s.must("CREATE TABLE t (id INT)")
		if _, err := s.exec(c.sql); c.code == "" && err != nil || c.code != "" && !isCode(err, c.code) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
