-- Highlight groups. They link to standard groups, so that every colour scheme fits; with `default` people can set
-- their own.
local M = {}

M.groups = {
  PillionAdd = "DiffAdd",
  PillionDelete = "DiffDelete",
  PillionAddSign = "DiffAdd",
  PillionDeleteSign = "DiffDelete",
  PillionAccepted = "DiagnosticInfo",
  PillionRejected = "Comment",
  PillionTaken = "Normal",
  PillionGone = "NonText",
  PillionDropped = "NonText",
  PillionHead = "Title",
  PillionHint = "Comment",
  PillionUser = "Title",
  PillionThought = "Comment",
  PillionTool = "Directory",
  PillionDone = "DiagnosticInfo",
  PillionRunning = "DiagnosticWarn",
  PillionFailed = "DiagnosticError",
  PillionAsk = "WarningMsg",
  PillionOption = "Special",
  PillionInfo = "Comment",
  PillionWarning = "DiagnosticWarn",
  PillionError = "DiagnosticError",
  PillionFolded = "Comment",
  PillionAttached = "Special",
  PillionKeepSign = "DiffChange",
}

local set = false

-- Defines the highlight groups, once, and again after `:colorscheme`.
function M.define()
  if set then
    return
  end
  set = true
  local function all()
    for name, link in pairs(M.groups) do
      vim.api.nvim_set_hl(0, name, { link = link, default = true })
    end
  end
  all()
  vim.api.nvim_create_autocmd("ColorScheme", { group = vim.api.nvim_create_augroup("pillion_highlights", { clear = true }), callback = all })
end

return M
