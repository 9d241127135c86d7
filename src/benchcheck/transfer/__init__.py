"""From one cluster to another: packages that are screened elsewhere, results that come home, folders far away."""
