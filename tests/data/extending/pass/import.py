from fuseflow.transform.share import share
