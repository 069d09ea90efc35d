package snowflake

import "strings"

// interactiveRegions are those with interactive tables and warehouses, as Snowflake's
// documentation listed them in November 2026; all of Azure has them. The list grows.
var interactiveRegions = " AWS_US_EAST_1 AWS_US_WEST_2 AWS_US_EAST_2 AWS_CA_CENTRAL_1 AWS_SA_EAST_1 AWS_AF_SOUTH_1 " +
	"AWS_AP_NORTHEAST_1 AWS_AP_NORTHEAST_2 AWS_AP_NORTHEAST_3" +
	" AWS_AP_SOUTH_1 AWS_AP_SOUTHEAST_1 AWS_AP_SOUTHEAST_2 AWS_EU_CENTRAL_1 AWS_EU_NORTH_1 AWS_EU_WEST_1 AWS_EU_WEST_2 " +
	"AWS_EU_WEST_3" +
	" GCP_US_CENTRAL1 GCP_US_EAST4 GCP_EUROPE_WEST2 GCP_EUROPE_WEST3 GCP_EUROPE_WEST4 GCP_AUSTRALIA_SOUTHEAST2 "

// checkFeatures says what the account's region and edition do not have, for a table
// that is to be made: one that is there proves that it can be.
func (a Adapter) checkFeatures(f findings, s *account, o options, clusters int64) {
	// PUBLIC.AWS_US_WEST_2 in an organization with several groups of regions.
	region := strings.ToUpper(s.region[strings.LastIndexByte(s.region, '.')+1:])
	google, azure := strings.HasPrefix(region, "GCP_"), strings.HasPrefix(region, "AZURE_")
	government := strings.Contains(region, "GOV")
	switch {
	case !google && !azure && !strings.HasPrefix(region, "AWS_"): // nothing is known of it
	case a.tableType == Hybrid && (google || government):
		where := "on Google Cloud"
		if government {
			where = "in the regions of the US government"
		}
		f.add("region", "failed", "The account is in the region "+region+", and there are no hybrid tables "+where+".",
			"use an account on AWS or Azure, or the adapter snowflake_standard; a hybrid table that is there already is used "+
				"without asking", "target.adapter")
	case a.tableType == Interactive && !azure && !strings.Contains(interactiveRegions, " "+region+" "):
		f.add("region", "warning", "The account is in the region "+region+
			", which was not among those with interactive tables when this version was made.",
			"see Snowflake's page on the availability of interactive tables, or use an account in another region",
			"target.adapter")
	}
	if o.search && clusters < 2 {
		f.add("edition", "warning", "Search optimization needs Enterprise edition, and only an organization's "+
			"administrator may ask which edition an account has: on Standard edition the run ends when its rows are loaded.",
			"leave target.params.search_optimization out on Standard edition", "target.params.search_optimization")
	}
}
