from fuseflow.frontend.datasets.ring import ring
