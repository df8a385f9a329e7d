// A step for Jenkins, from this repository as a shared library:
//
//   ncclcheck(image: 'my/image', version: '0.1.0', releases: 'https://…/releases/download', profile: 'ci')
//
// Installs the release into the workspace, checks the images, and publishes the result as tests. Returns the exit status of ncclcheck; the
// build fails for any but 0, unless `fail: false` is given.
def call(Map settings) {
  for (name in ['image', 'version', 'releases']) {
    if (!settings[name]) { error "ncclcheck: the setting '${name}' is missing" }
  }
  def variables = ["RELEASES=${settings.releases}", "VERSION=${settings.version}", "NCCLCHECK_SHA256=${settings.sha256 ?: ''}", 'INPUT_FORMAT=junit']
  for (name in ['image', 'profile', 'policy', 'dockerfile', 'failOn', 'incomplete', 'baseline']) {
    variables << "INPUT_${name == 'failOn' ? 'FAIL_ON' : name.toUpperCase()}=${settings[name] ?: ''}"
  }
  int status = 2
  withEnv(variables) {
    status = sh(returnStatus: true, script: '''
      set -e
      mkdir -p .ncclcheck
      for file in install-ncclcheck check-ncclcheck; do
        curl -fsSLo ".ncclcheck/$file" "$RELEASES/v$VERSION/$file"
      done
      sh .ncclcheck/install-ncclcheck "$RELEASES" "$VERSION" "$WORKSPACE/.ncclcheck/bin"
      PATH=$WORKSPACE/.ncclcheck/bin:$PATH bash .ncclcheck/check-ncclcheck
    ''')
  }
  if (status == 0 || status == 1 || status == 3) { junit testResults: 'ncclcheck-reports/ncclcheck.xml', skipMarkingBuildUnstable: true }
  if (status != 0 && settings.fail != false) { error "ncclcheck exited with ${status}" }
  return status
}
