-- The commands review, accept, reject, edit and comment. What they decide depends on the place of the cursor.
local approval = require("pillion.approval")
local log = require("pillion.log")
local sessions = require("pillion.session")

local M = {}

---@param what? string
function M.review(what)
  local review = require("pillion.review").current()
  local go = require("pillion.review_go")
  local view = require("pillion.review_view")
  if not review then
    local s = sessions.current
    if s and s.id and (what == "next" or what == "prev") and require("pillion.follow").step(s, what == "next" and 1 or -1) then
      return
    end
    return log.tell("info", "no proposal is open; :Pillion changes lists the changes of the last turn")
  end
  if what == "next" or what == "prev" then
    return go.step(review, what == "next" and 1 or -1)
  elseif what == "list" then
    return require("pillion.quickfix").hunks(review)
  elseif what == "files" then
    local files = {}
    for _, f in ipairs(review.files) do
      files[#files + 1] = { path = f.path, kind = f.kind, hunks = f.hunks, line = f.hunks[1] and math.max(f.hunks[1].old_start, 1) }
    end
    return require("pillion.quickfix").files(files)
  elseif what == "reset" then
    review:reset()
    return log.tell("info", "all decisions were reset")
  elseif what == "split" or (not what and require("pillion.config").options.review.layout == "split") then
    local edit = require("pillion.review_edit")
    local file = edit.file_here(review)
    if file then
      edit.split(review, file)
    end
    return
  elseif what == "unified" then
    require("pillion.review_edit").close(review)
    view.show(review)
  end
  local first = go.here(review)
  if not first then
    for _, h in ipairs(review.hunks) do
      if not h.decision then
        first = h
        break
      end
    end
  end
  if first then
    go.to(review, first)
  end
end

-- `:Pillion accept` and `:Pillion reject`. What they decide depends on the cursor and on the pending requests.
---@param verdict "accept"|"reject"
---@param args string[]
function M.decide(verdict, args)
  local review = require("pillion.review").current()
  local here = review and review:file_in(vim.api.nvim_get_current_buf())
  local what = args[1]
  if not here and review and what ~= "all" then
    local other = approval.first({ permission = true, form = true })
    if not other then
      -- The cursor is not on a hunk and there are several: do not decide one that the person may not mean.
      return log.tell("info", "go to the proposal first (:Pillion review), or decide all of it (:Pillion " .. verdict .. " all)")
    end
    review = nil
  end
  if review then
    if what == "always" then
      return M.always(review.ask)
    end
    return M.decide_hunks(review, here, verdict, args)
  end
  local ask = approval.first({ permission = true, form = true })
  if ask then
    if what == "always" then
      return M.always(ask)
    elseif ask.kind == "form" then
      if verdict == "reject" then
        return approval.dismiss(ask)
      end
      return approval.pick(ask)
    end
    local comment = verdict == "reject" and table.concat(args, " ") or nil
    if not approval.decide(ask, verdict == "accept" and "allow_once" or "reject_once", comment) then
      approval.pick(ask)
    end
    return
  end
  local s = sessions.current
  if s and s.id and require("pillion.follow").touched[s.id] then
    return require("pillion.follow").settle(s, verdict == "accept" and "keep" or "undo", what or "hunk")
  end
  log.tell("info", "no approval is pending")
end

-- Lets the person choose what else a grant covers besides this request.
---@param ask pillion.Ask
function M.always(ask)
  local always = vim.tbl_filter(function(o)
    return o.kind == "allow_always"
  end, ask.options)
  vim.ui.select(always, {
    prompt = "Always allow",
    format_item = function(o)
      return o.name
    end,
  }, function(o)
    if o then
      approval.choose(ask, o)
    end
  end)
end

---@param review pillion.Review
---@param here? pillion.ReviewFile
---@param verdict "accept"|"reject"
---@param args string[]
function M.decide_hunks(review, here, verdict, args)
  local go = require("pillion.review_go")
  local what, hunks = args[1], {}
  local words = verdict == "reject" and what ~= "hunk" and what ~= "file" and what ~= "all" and table.concat(args, " ") or ""
  if #review.hunks == 0 then
    approval.decide(review.ask, verdict == "accept" and "allow_once" or "reject_once", words)
    return
  end
  if what == "all" or what == "file" then
    for _, h in ipairs(review.hunks) do
      if not h.decision and (what == "all" or h.file == here) then
        hunks[#hunks + 1] = h
      end
    end
  else
    local here_now = go.here(review)
    -- Hunks that belong together are decided together; with the argument "hunk" only this one is.
    hunks = here_now and (what == "hunk" and { here_now } or review:together(here_now)) or {}
    if #hunks > 1 then
      log.tell("info", ("%d hunks together; :Pillion %s hunk decides only one"):format(#hunks, verdict))
    end
  end
  local last = hunks[#hunks]
  if not last then
    return log.tell("info", "no open hunk here; :Pillion review goes to the next")
  end
  review:decide(hunks, verdict, { comment = words ~= "" and words or nil })
  go.onward(review, last)
end

local function hunk_here()
  local review = require("pillion.review").current()
  local hunk = review and require("pillion.review_go").here(review)
  if not hunk then
    log.tell("info", "there is no proposed hunk here; :Pillion review goes to one")
    return nil
  end
  return review, hunk
end

-- Opens the proposed lines of the hunk at the cursor.
function M.edit()
  local review, hunk = hunk_here()
  if review then
    require("pillion.review_edit").hunk(review, hunk)
  end
end

---@param words string
function M.comment(words)
  local review, hunk = hunk_here()
  if not review then
    return
  end
  local function take(text)
    if text and text ~= "" then
      hunk.comment = text
      require("pillion.review_view").refresh(review)
    end
  end
  if words ~= "" then
    return take(words)
  end
  vim.ui.input({ prompt = "About this hunk: ", default = hunk.comment }, take)
end

return M
