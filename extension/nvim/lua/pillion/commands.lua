-- :Pillion. If the first word is a subcommand and the other words are valid arguments of it, it runs; otherwise the
-- line is a prompt.
--   :Pillion stop            stops the turn          :Pillion stop using globals   is a prompt
local subcommands = require("pillion.subcommands")

local sub, from = subcommands.subcommands, subcommands.from
local M = {}

local function session()
  return require("pillion.session").get()
end

-- Sends a prompt with the range as its context.
---@param text string
---@param raw table
function M.ask(text, raw)
  local extra
  if raw.range and raw.range > 0 then
    local selection = require("pillion.selection")
    local s = selection.lines(vim.api.nvim_get_current_buf(), raw.line1, raw.line2)
    selection.last = s
    extra = { require("pillion.context").range(s) }
  end
  if text == "" then
    local v = require("pillion.chat").open(true)
    if extra then
      vim.list_extend(v.session.attached, extra)
      v.session:status()
    end
    return
  end
  require("pillion.chat").prompt(text, extra)
end

-- Runs the command with the arguments of nvim_create_user_command's callback.
---@param raw table
function M.run(raw)
  local args = vim.deepcopy(raw.fargs)
  local command = not raw.bang and sub[args[1] or ""]
  if command then
    table.remove(args, 1)
    local fits = command.fits
    if (fits and fits(args)) or (not fits and #args == 0) then
      return command.run(args, raw)
    end
  end
  M.ask(raw.args, raw)
end

---@param lead string
---@param line string
---@return string[]
function M.complete(lead, line)
  local rest = line:match("Pillion!?%s+(.*)$") or ""
  local parts = vim.split(rest, "%s+")
  if #parts <= 1 then
    local names = vim.tbl_keys(sub)
    table.sort(names)
    local out = from(names)(lead)
    if lead:sub(1, 1) == "@" then
      vim.list_extend(out, M.mentions(lead))
    end
    return out
  end
  local command = sub[parts[1]]
  if lead:sub(1, 1) == "@" and parts[1] ~= "add" then
    return M.mentions(lead)
  end
  return command and command.complete and command.complete(lead, parts) or {}
end

-- Completes @words and files on the command line.
---@param lead string
---@return string[]
function M.mentions(lead)
  local out = {}
  local items
  require("pillion.complete").mentions(session(), lead, function(list)
    items = list
  end)
  vim.wait(800, function()
    return items ~= nil
  end, 10)
  for _, i in ipairs(items or {}) do
    out[#out + 1] = i.word
  end
  return out
end

return M
